"""The one exception that is meant for the person at the keyboard."""


class UserError(Exception):
    """Something the user can put right: the message is one sentence that says what is wrong and what to do.

    The command line prints the message without a traceback and exits with status 2.
    """
