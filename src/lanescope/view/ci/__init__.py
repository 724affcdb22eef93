"""What services of continuous integration show of an answer: annotations, and summaries of jobs."""
