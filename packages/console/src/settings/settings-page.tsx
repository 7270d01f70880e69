import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Contents, Loaded } from '../ui/blocks.js';
import { Agent, Model } from './agent.js';
import { GitHosts } from './git-hosts.js';
import { Secrets } from './secrets.js';
import { ToolServers } from './tool-servers.js';
import { Webhooks } from './webhooks.js';

/** What a user connects: all of it on one page, in the order in which a newcomer needs it. */
export function SettingsPage() {
  const me = useQuery(meQuery);
  return (
    <Page title="Settings">
      <Contents titles={['Git hosts', 'Model', 'Agent', 'Secrets', 'Tool servers', 'Webhooks']} />
      <Loaded query={me} name="settings">
        {(settings) => (
          <>
            <GitHosts settings={settings} />
            <Model settings={settings} />
            <Agent settings={settings} />
            <Secrets />
            <ToolServers settings={settings} />
            <Webhooks />
          </>
        )}
      </Loaded>
    </Page>
  );
}
