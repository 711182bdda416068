"""``python -m osilp_pyomo.cli``: the command ``osilp`` where its script is not on the path."""

import sys

from osilp_pyomo.cli.main import main

sys.exit(main())
