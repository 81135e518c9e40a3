"""
What `pai-spot demo` is made of: real Airflow processes, one scripted evening of training, and how it is shown.

`airflow_processes` is also what the end-to-end tests stand on. Nothing is imported here.
"""
