"""Stories of playbooks from the alert on: the whole core and the real executor on a simulated cluster, without time."""
