"""What can be called: workers, pools, one action interface, an adapter per kind, storage of pools."""

import os

# Every room imports this one before anything that reads them: nothing of Podium calls home, unless the user says so.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")
