import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from '../api/client.js';
import { Agent } from '../settings/agent.js';
import { Model } from '../settings/model.js';
import { DeleteSecret, SecretForm, SETUP } from '../settings/secrets.js';
import { sharedSettingsQuery } from '../settings/stored-settings.js';
import { ToolServers } from '../settings/tool-servers.js';
import { Loaded, Row, Rows, Section, When } from '../ui/blocks.js';
import { organizationQuery, wholeOf } from './user-queries.js';

export const SHARED_TITLES = ['Shared model', 'Shared agent settings', 'Shared tool servers', 'Shared secrets'];

/** What administrators set for all users: the parts of each user's own settings, about the organization's. */
export function SharedSettings() {
  const owner = 'organization';
  return (
    <>
      <Loaded query={useQuery(sharedSettingsQuery)} name="what the organization shares">
        {(settings) => (
          <>
            <Model settings={settings} owner={owner} />
            <Agent settings={settings} owner={owner} />
            <ToolServers settings={settings} owner={owner} />
          </>
        )}
      </Loaded>
      <SharedSecrets />
    </>
  );
}

const LEAD = "Environment variables for the tools of all users' agents. A value cannot be read back.";
const CLEAR = 'Without hosts, whoever may start a conversation can read the value there';

const sharedSecretsQuery = (organization: string) =>
  queryOptions({
    queryKey: ['shared-secrets', organization],
    queryFn: () =>
      wholeOf((query) => {
        const params = { path: { organization_id: organization }, query };
        return bodyOf(api.GET('/api/organizations/{organization_id}/secrets', { params }));
      }),
    enabled: organization !== '',
  });

function SharedSecrets() {
  const organization = useQuery(organizationQuery).data ?? '';
  const store = (body: Schemas['CreateOrganizationSecret']) => {
    const params = { path: { organization_id: organization } };
    return bodyOf(api.POST('/api/organizations/{organization_id}/secrets', { params, body }));
  };
  const remove = (name: string) => {
    const params = { path: { organization_id: organization, name } };
    return bodyOf(api.DELETE('/api/organizations/{organization_id}/secrets/{name}', { params }));
  };
  const secrets = useQuery(sharedSecretsQuery(organization));
  return (
    <Section title="Shared secrets" lead={LEAD}>
      <Rows query={secrets} name="shared secrets" empty="No secret is shared.">
        {({ name, description, hosts, phase, created_at: made }) => (
          <Row
            key={name}
            title={<code>{name}</code>}
            facts={[description, hosts?.join(', '), phase && SETUP, <When what="Stored" time={made} />]}>
            <DeleteSecret name={name} act={() => remove(name)} />
          </Row>
        )}
      </Rows>
      <SecretForm name="Shared secret" store={store} clear={CLEAR} />
    </Section>
  );
}
