"""`pai-spot jobs`: what Airflow has on DLC. `reading` finds, `command` shows."""
