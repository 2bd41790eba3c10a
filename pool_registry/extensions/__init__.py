"""What installed packages add: tables that they extend, the packages that are known to, and their files."""
