import { useQuery } from '@tanstack/react-query';
import { meQuery, session } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Contents, Folds, Loaded } from '../ui/blocks.js';
import { Inherited } from '../ui/form.js';
import { Agent } from './agent.js';
import { GitHosts } from './git-hosts.js';
import { Devices, Keys } from './keys.js';
import { Model } from './model.js';
import { Notifications } from './notifications.js';
import { Secrets } from './secrets.js';
import { SignIns } from './sign-ins.js';
import { ToolServers } from './tool-servers.js';
import { Webhooks } from './webhooks.js';

const TITLES = [
  'Git hosts',
  'Model',
  'Agent',
  'Secrets',
  'Tool servers',
  'Webhooks',
  'Notifications',
  'Keys',
  'Devices',
];

/** What a user connects: all of it on one page, in the order in which a newcomer needs it. */
export function SettingsPage() {
  const me = useQuery(meQuery);
  return (
    <Page title="Settings">
      <Contents titles={session.signInUrl === null ? TITLES : [...TITLES, 'Company account']} />
      <Loaded query={me} name="settings">
        {(settings) => (
          <Folds value>
            <GitHosts />
            <Inherited value={settings.from_organization}>
              <Model settings={settings} />
              <Agent settings={settings} />
            </Inherited>
            <Secrets />
            <ToolServers settings={settings} />
            <Webhooks />
            <Notifications />
            <Keys />
            <Devices />
            <SignIns />
          </Folds>
        )}
      </Loaded>
    </Page>
  );
}
