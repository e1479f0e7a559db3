-- 
unary "acme.a" {doc="d",dtypes="f32",params={a=INFINITY,b=-NAN},body="minimum(maximum(x,a),b)"}
