"""One reader of files with questions and answers: any encoding, any of the common formats, columns by their names."""
