"""
Airflow's local settings for the chaos suite: workers import once what every task would import again.

That is almost a second of CPU for each of about a thousand task processes, which are forked from the worker.
"""

import importlib
import sys

if "celery" in sys.argv:
    for name in (
        "alibabacloud_credentials.client",
        "alibabacloud_pai_dlc20201203.client",
        "airflow_provider_pai_spot.operators.flow",
        "airflow_provider_pai_spot.operators.spot_job",
        "airflow_provider_pai_spot.sensors.spot_job",
    ):
        importlib.import_module(name)
