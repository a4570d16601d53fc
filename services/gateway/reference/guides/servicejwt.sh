b64url() { openssl base64 -A | tr '+/' '-_' | tr -d =; }
now=$(date +%s)
head=$(printf '{"alg":"HS256","typ":"JWT"}' | b64url)
claims=$(printf '{"iss":"%s","sub":"%s","aud":"hub","iat":%d,"exp":%d,"jti":"%s"}' \
  "$HUB_SERVICE_CODE" "$HUB_LINKED_USER" "$now" "$((now + 60))" "$(openssl rand -hex 16)" | b64url)
signature=$(printf %s "$head.$claims" | openssl dgst -sha256 -hmac "$HUB_SERVICE_SECRET" -binary | b64url)
curl -sS "$HUB_URL/v1/pay/orders?limit=1" -H "Authorization: Bearer $head.$claims.$signature"
