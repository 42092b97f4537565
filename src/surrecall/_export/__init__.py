"""Taking data out: questions, labels, rankings, history and documents as files that other tools read."""
