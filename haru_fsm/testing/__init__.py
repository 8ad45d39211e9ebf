"""What users import in their own tests: a fake Gemini, the API's rule book, crash points and the kill driver."""
