"""
Find jobs that nobody in Airflow waits for any more, and stop them.

`owners` names what Airflow knows and how it stands; `candidates` decides, purely; `finding` reads our live jobs from
DLC; `airflow_api` asks Airflow's public REST API; `costs` says what a job can cost; `sweeper` does all of it in order.
Whatever is not certain leaves a job alone: an answer that is missing is never a yes.
"""
