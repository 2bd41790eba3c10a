// Where a job runs, as a recipe's `where` says it: here, hf:FLAVOR or ray://HOST:PORT.

export const HERE = "here";

/**
 * Whether it is a machine that costs money.
 * @param {string} [where]
 */
export const isRented = (where) => Boolean(where?.startsWith("hf:"));

/**
 * Whether it is a Ray cluster.
 * @param {string} [where]
 */
export const isCluster = (where) => Boolean(where?.startsWith("ray:"));

/**
 * Where a job runs and with what of it: "GPU 0, 1 · 2 processes", "here", "hf:l4x1".
 * @param {Pick<import("../types").JobLine, "where" | "gpus" | "processes">} job
 */
export function describePlace({ where, gpus, processes }) {
  const place = gpus.length ? `GPU ${gpus.join(", ")}` : where;
  return processes > 1 ? `${place} · ${processes}\u00a0processes` : place;
}
