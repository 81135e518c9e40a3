"""DLC's error answers: an HTTP status and a body of Code, Message and RequestId."""

from __future__ import annotations

from typing import Any


class DlcError(Exception):
    """
    What an operation answers instead of a result.

    :param status: HTTP status.
    :param code: DLC's `Code`.
    :param message: DLC's `Message`.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the JSON body of the answer."""
        return {"Code": self.code, "Message": self.message, "RequestId": request_id}


def invalid_parameter(message: str) -> DlcError:
    """A value in the request is not allowed."""
    return DlcError(400, "InvalidParameter", message)


def job_not_found(job_id: str) -> DlcError:
    """There is no such job."""
    return DlcError(404, "NotFound", f"Job {job_id!r} is not found.")


def pod_not_found(job_id: str, pod_id: str) -> DlcError:
    """The job has no such pod."""
    return DlcError(404, "NotFound", f"Pod {pod_id!r} of job {job_id!r} is not found.")


def unsupported(operation: str, supported: tuple[str, ...]) -> DlcError:
    """DLC may have the operation, this emulator has not: said loudly, and not as a fault that will pass."""
    names = ", ".join(supported)
    return DlcError(400, "UnsupportedOperation", f"The DLC emulator does not know {operation}; it knows {names}.")
