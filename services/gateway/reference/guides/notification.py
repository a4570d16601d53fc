import base64, hashlib, hmac, time

def verify(secret, headers, body):
    """Raises ValueError unless the bytes of body are from Hub, and of the last five minutes."""
    id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    want = base64.b64encode(hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)).decode()
    if not any(hmac.compare_digest(s, "v1," + want) for s in headers["webhook-signature"].split(" ")):
        raise ValueError("not from Hub")
    if abs(time.time() - int(timestamp)) > 300:
        raise ValueError("too old")
