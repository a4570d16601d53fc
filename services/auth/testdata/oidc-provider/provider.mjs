// A certified OpenID Connect provider for the tests: whoever signs in as x@example.com is
// that. The account's name says what the provider claims of it.
import Provider from 'oidc-provider';

const [port, redirect] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: 'hub', client_secret: 'a secret of the tests', redirect_uris: [redirect], grant_types: ['authorization_code'], response_types: ['code'] }],
  pkce: { required: () => true },
  cookies: { keys: ['tests'] },
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id, email: id.replace(/^[^+]*\+/, ''), email_verified: !id.startsWith('unverified+'), name: `Name of ${id}`,
      groups: id.startsWith('silent+') ? undefined : id.startsWith('boss+') ? ['hub-admins', 'others'] : id.startsWith('none+') ? ['others'] : ['hub-reviewers'],
    }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
process.stdin.on('end', () => process.exit()).resume(); // ends with the test
