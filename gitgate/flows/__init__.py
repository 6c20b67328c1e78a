"""Flows: programs of agents and people that survive their process. A run is told by its journal, `refs/hitl/runs/<id>`.

`journal` holds the right to go on with a run, and writes its events. `engine` replays a flow against them: `Engine.perform` makes
a step of any function, `Engine.ask` one that opens a gate, and `Engine.handler` answers gates in this process.
`branches.in_parallel` runs several steps at once, each on a line of its own, as `terms` numbers them. `agents` is the step that
runs an agent. `program` is a flow as a program: how a run begins, is played, goes on and ends.
What an event is, and what a run amounts to, is below: `record.runs`, `model.RUN_TABLE`, `store.records.journal`.
"""
