"""What people asked becomes what the orchestrator learns: `podium improve`.

record.py   an improvement in its folder, and which tasks earlier ones have taken
choose_tasks.py  the new tasks, the old ones, what is held out
set_aside.py  the tasks that no improvement takes until a person has looked
stages.py   the table of what can be trained, the cheapest first
choice.py   the stage that learns which worker to choose
measure.py  the candidate beside the serving orchestrator, on the same tasks
gate.py     whether the candidate may take the place of the serving one
run.py      all of it, from where an interrupted one stopped
"""
