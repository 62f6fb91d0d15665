"""
Takes what the GPU agents of a cluster send: ``POST /v1/gpu-samples``, one batch of `core.gpu_wire` each.

    200   taken: the events wait for the engine
    400   cannot be used, ever: not a batch, of another version, a node that is not the sender's
    401   no token, or one that the API server does not know
    403   the token speaks for somebody else: another node, another service account
    503   not now: the API server does not say who it is, or we are behind
"""
