"""The secrets that let a browser in: a link that works once, and its session."""

import hmac
import secrets
import threading
from collections.abc import Callable

__all__ = ["Door"]


class Door:
    """A token that works once, and the session that it is exchanged for. Thread-safe.

    Args:
        spent: Called with the next token when one was used, such as to print the
            link for another browser.

    Attributes:
        session: The secret that a browser keeps in its cookie.
    """

    def __init__(self, spent: Callable[[str], None] | None = None) -> None:
        self.session = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self._spent = spent
        self._lock = threading.Lock()

    @property
    def token(self) -> str:
        """The token that works now."""
        with self._lock:
            return self._token

    def redeem(self, token: str) -> bool:
        """Return whether the token is the one that works, which then works no more."""
        with self._lock:
            if not _equal(token, self._token):
                return False
            following = self._token = secrets.token_urlsafe(32)
        if self._spent is not None:
            self._spent(following)
        return True

    def knows(self, session: str) -> bool:
        """Return whether a cookie holds the secret of the session."""
        return _equal(session, self.session)


def _equal(given: str, secret: str) -> bool:
    # As bytes: `compare_digest` raises TypeError on text that is not ASCII.
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
