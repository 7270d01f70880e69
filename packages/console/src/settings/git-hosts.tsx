import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, meQuery, type Provider, PROVIDER_NAMES, providerName, type Schemas } from '../api/client.js';
import { Confirmed } from '../ui/actions.js';
import { type Fields, Form, given, SelectField, TextField, useFilter } from '../ui/form.js';
import { Elsewhere, Row, Rows, Section } from '../ui/blocks.js';
import { reasonOf, refusingHosts, tasksQuery } from '../work/suggested-tasks.js';

const WHERE: Record<Provider, { text: string; url?: string; host: string }> = {
  github: {
    text: 'A personal access token that may read and write contents, issues and pull requests',
    url: 'https://github.com/settings/personal-access-tokens/new',
    host: 'github.com',
  },
  gitlab: {
    text: 'A personal access token with the scope api',
    url: 'https://gitlab.com/-/user_settings/personal_access_tokens',
    host: 'gitlab.com',
  },
  bitbucket: {
    text: 'email:token, where the token is an API token that may read and write repositories and pull requests',
    url: 'https://id.atlassian.com/manage-profile/security/api-tokens',
    host: 'bitbucket.org',
  },
  enterprise_sso: {
    text: 'A token of the sign-in service of your organization, which keeps the tokens of its git hosts',
    host: 'sso.example.com',
  },
};

const PUBLIC: Provider[] = ['github', 'gitlab', 'bitbucket'];

/** What the operator has configured. */
const configuredQuery = queryOptions({
  queryKey: ['git-hosts'],
  queryFn: async () => (await bodyOf(api.GET('/api/v1/web-client/config'))).providers_configured,
  staleTime: Infinity,
});

const FORGOTTEN = 'Its token is deleted.';

function store(provider: string, token: Schemas['ProviderToken'] | null) {
  return bodyOf(api.POST('/api/v1/secrets/git-providers', { body: { provider_tokens: { [provider]: token } } }));
}

/** What is said of a host whose token was never accepted: it is asked again, and says why. */
function useUnverified(): (provider: string) => string | false {
  const { data: unverified = [] } = useQuery({ ...meQuery, select: (me) => me.provider_tokens_unverified });
  const { data, error } = useQuery({ ...tasksQuery, enabled: unverified.length > 0 });
  const statuses = data?.hosts ?? refusingHosts(error);
  return (provider) => {
    const status = statuses.find((each) => each.provider === provider);
    return unverified.some((each) => each === provider) && ((status && reasonOf(status, false)) || 'not verified yet');
  };
}

export function GitHosts() {
  const [{ provider }, bind] = useFilter<{ provider: Provider }>({ provider: 'github' });
  const hosts = useQuery({ ...meQuery, select: ({ provider_tokens_set: set }) => Object.entries(set) });
  const unverified = useUnverified();
  const offered = useQuery(configuredQuery).data ?? PUBLIC;
  const { text, url, host: publicHost } = WHERE[provider];
  const hint = (
    <>
      {text}. {url && <Elsewhere href={url} text={`Get one at ${PROVIDER_NAMES[provider]}`} />}
    </>
  );
  const options = offered.map((each) => [each, PROVIDER_NAMES[each]] as const);
  const connect = async (field: Fields) => {
    const token = given({ token: field('token'), host: field('host') });
    const { warnings: [warning] = [] } = await store(provider, token);
    return warning === undefined ? `${PROVIDER_NAMES[provider]} is connected.` : { warning: warning.detail };
  };
  return (
    <Section title="Git hosts" lead="Where your work is. Each token is checked with its host before it is stored.">
      <Rows query={hosts} name="git hosts" empty="No git host is connected.">
        {([name, host]) => (
          <Row key={name} title={providerName(name)} facts={[host ?? WHERE[name as Provider]?.host, unverified(name)]}>
            <Confirmed name="Disconnect" of={providerName(name)} text={FORGOTTEN} act={() => store(name, null)} />
          </Row>
        )}
      </Rows>
      <Form name="Connection" submit="Connect" onSubmit={connect}>
        <div className="columns">
          <SelectField label="Provider" options={options} {...bind('provider')} />
          <TextField label="Host" placeholder={publicHost} hint="Only for your own server" />
        </div>
        <TextField label="Token" type="password" required hint={hint} />
      </Form>
    </Section>
  );
}
