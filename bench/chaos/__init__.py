"""What becomes of backstory when it is killed, overrun and fed with nonsense; see __main__."""
