"""The steps of a conversion and the records that they pass on; `usecases.pipeline` lists them in order."""
