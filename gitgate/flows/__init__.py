"""Flows: programs of agents and people that survive their process. A run is told by its journal, `refs/hitl/runs/<id>`.

`journal` holds the right to go on with a run, and writes its events. `engine` replays a flow against them. What an event is,
and what a run amounts to, is below: `record.runs`, `model.states.RUN_TABLE`, `store.records.journal`.
"""
