"""
Schedule training on PAI DLC spot capacity from Apache Airflow.

Where things are, lowest first: a room imports only from rooms above it in this table, and `lint-imports` checks it.

==================  ======================================================================
room                what it knows
==================  ======================================================================
`dlc`               DLC as values: statuses, request bodies, jobs, verdicts. No Airflow
`exceptions`        one tree: a type for each way a spot job can end badly
`clock`             what time it is, and how to wait; replaced in tests
`settings`          the `[pai_spot]` section of airflow.cfg
`market`            what spot capacity is offered, read from DLC's answers; pure
`recovery`          outcome + history -> next step; pure policy
`hooks`             connection -> vendor SDK client; translates its errors
`attempts`          one task instance's jobs: identity, stored state, find-or-create
`triggers`          waits in the triggerer
`operators`         SubmitSpotJobOperator
`sensors`           SpotJobSensor
`retry_policy`      SpotRetryPolicy, for Airflow's own retries; imports `exceptions` only
`links`             console URLs from pushed ids
`sweep`             finds jobs that nobody owns any more, and stops them
`cli`               `pai-spot`
`emulator`          a DLC service on your machine; imports none of the rooms above
==================  ======================================================================

Nothing is imported here: a DAG parse loads only what the DAG file names.
"""

__version__ = "0.1.0"
