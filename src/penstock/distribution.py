"""The distribution of Penstock: its name in package indexes, and its version.

The import name and the command are ``penstock``. The package of that name on PyPI belongs to
another project, so hints and documents install ``penstock-spark``.
"""

from __future__ import annotations

NAME = "penstock-spark"
VERSION = "0.1.0"  # hatchling takes the version of the package from this line
