"""`pai-spot explain`: its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.cli.airflow_process import airflow_process
from airflow_provider_pai_spot.cli.connecting import add_connection_options, open_hook
from airflow_provider_pai_spot.cli.printing import print_json, print_text
from airflow_provider_pai_spot.cli.tables import print_table

if TYPE_CHECKING:
    from airflow_provider_pai_spot.cli.explain.reading import Explained
    from airflow_provider_pai_spot.dlc.verdict import Rule

_EPILOG = """\
The verdict is the one that a task comes to, by the rules in force here, your own ([pai_spot] verdict_rules) among them.
A file holds what GetJob answers; what GetJobEvents answers may stand beside it, under "Events". Nothing is asked then.

examples:
  pai-spot explain dlc1a2b3c4d5e6f
  pai-spot explain dlc1a2b3c4d5e6f --conn-id pai_dlc_shanghai --json
  pai-spot explain --file job.json
  pai-spot explain --rules

exit codes: 0 told, also about a bad end; 1 there is no such job or file: one line says why
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `pai-spot explain`."""
    parser.epilog = _EPILOG
    which = parser.add_mutually_exclusive_group()
    which.add_argument("job_id", nargs="?", metavar="JOB_ID", help="DLC's id of the job, as in task logs: dlc…")
    which.add_argument("--file", metavar="PATH", help="a job as JSON, instead of one on DLC; - for standard input")
    add_connection_options(parser)
    parser.add_argument("--rules", action="store_true", help="show the whole table of rules, with its version")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Explain; errors are raised."""
    if options.job_id is None and options.file is None and not options.rules:
        options.refuse("name a JOB_ID, a --file, or ask for the --rules")
    with airflow_process(debug=options.debug):
        from airflow_provider_pai_spot.attempts.judging import rules_in_force

        rules = rules_in_force()
        explained = _explained(options)
    if options.json:
        print_json(_as_json(explained, rules, with_rules=options.rules))
    else:
        _print(explained, rules, with_rules=options.rules)
    return 0


def _explained(options: argparse.Namespace) -> Explained | None:
    from airflow_provider_pai_spot.cli.explain.reading import from_dlc, from_file

    if options.file is not None:
        return from_file(options.file)
    return None if options.job_id is None else from_dlc(open_hook(options), options.job_id)


def _as_json(explained: Explained | None, rules: Sequence[Rule], *, with_rules: bool) -> dict[str, Any]:
    from airflow_provider_pai_spot.cli.explain import showing

    return {
        **(showing.as_json(explained, rules) if explained else {}),
        **(showing.rules_json(rules) if with_rules else {}),
    }


def _print(explained: Explained | None, rules: Sequence[Rule], *, with_rules: bool) -> None:
    from airflow_provider_pai_spot.cli.explain import showing

    if explained:
        print_text(showing.as_text(explained, rules))
    if with_rules:
        print(("\n" if explained else "") + showing.rules_title(rules))
        print_table(showing.RULE_COLUMNS, showing.rules_rows(rules))
