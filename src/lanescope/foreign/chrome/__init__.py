"""Chrome's trace events in JSON: what browsers, tools and lanescope itself write."""
