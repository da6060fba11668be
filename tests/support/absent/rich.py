"""Hides a package of the development environment, which installations lack, from the processes that tests execute.

The logging library imports it wherever it finds it, which takes longer than all else that a small command does.
"""

raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
