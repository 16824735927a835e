"""The functions of the Kubernetes environment, one module a library.

``FUNCTIONS`` of each module declares its functions: names, signatures and implementations. Names,
signatures and error texts are upstream's; the versions are those of Kubernetes 1.37.
"""
