-- Another run, as `kubectl hudi restart`. The generation names it: it is another one after each
-- change of the spec, and a second click before the first one has arrived asks for the same run.
obj.spec.restartNonce = "argocd-" .. obj.metadata.generation
return obj
