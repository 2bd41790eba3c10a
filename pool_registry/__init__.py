"""What can be called: workers, pools, one action interface, an adapter per kind, storage of pools."""
