"""The blinker: a made-up controller of lamps that writes down when each lamp goes on and off."""
