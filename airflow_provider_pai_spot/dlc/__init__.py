"""
DLC as values: statuses, request bodies, jobs and verdicts.

Works on plain JSON in DLC's own keys. Must not know Airflow, the vendor SDK, sockets or clocks: whoever needs
"now" passes it in.
"""
