import base64, hashlib, hmac, json, os, secrets, time, urllib.request

def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")

def service_jwt():
    now = int(time.time())
    claims = {"iss": os.environ["HUB_SERVICE_CODE"], "sub": os.environ["HUB_LINKED_USER"], "aud": "hub",
              "iat": now, "exp": now + 60, "jti": secrets.token_hex(16)}
    signed = b64url(b'{"alg":"HS256","typ":"JWT"}') + b"." + b64url(json.dumps(claims).encode())
    secret = os.environ["HUB_SERVICE_SECRET"].encode()
    return (signed + b"." + b64url(hmac.digest(secret, signed, hashlib.sha256))).decode()

request = urllib.request.Request(os.environ["HUB_URL"] + "/v1/pay/orders?limit=1",
                                 headers={"Authorization": "Bearer " + service_jwt()})
print(urllib.request.urlopen(request).read().decode())
