"""Where traces lie on one time axis if they share no clock."""
