# The words of dev.py under their usual names: `make test ARGS="-k perceptron"`.
PYTHON ?= python3
WORDS := setup run test lint wheel chapter mutate slow torture

.PHONY: help $(WORDS)

help:
	@$(PYTHON) dev.py

$(WORDS):
	@$(PYTHON) dev.py $@ $(ARGS)
