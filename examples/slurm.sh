#!/bin/bash
# A recipe as a job of a cluster with Slurm: `sbatch examples/slurm.sh my-recipe.yaml`.
# Run it in a checkout after `make setup`. The job resumes by itself when Slurm puts it into its queue again.
#SBATCH --job-name=podium
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=64G
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
set -euo pipefail

recipe=${1:-single-gpu-24gb}
home=${PODIUM_HOME:-$SLURM_SUBMIT_DIR/podium-home}
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-8}
cd "$SLURM_SUBMIT_DIR"

job=$(cat "$home/slurm-$SLURM_JOB_ID" 2>/dev/null || true)
if [ -n "$job" ]; then
  .venv/bin/python -m trainer jobs resume "$job" --home "$home"
else
  mkdir -p "$home"
  job=$(.venv/bin/python -m trainer train "$recipe" --detach --home "$home")
  echo "$job" > "$home/slurm-$SLURM_JOB_ID"
fi

trap '.venv/bin/python -m trainer jobs stop "$job" --home "$home"' TERM
state=queued
while [[ $state =~ ^(queued|running|stopping)$ ]]; do
  sleep 20 & wait $! || true
  state=$(.venv/bin/python -m trainer jobs show "$job" --json --home "$home" |
    .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["state"])')
done
echo "$job: $state"
[ "$state" = done ]
