-- As `kubectl hudi suspend`.
obj.spec.suspend = true
return obj
