import { useQuery } from '@tanstack/react-query';
import { type ComponentType, lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { sessionQuery } from '../api/client.js';
import { Empty, Loaded } from '../ui/blocks.js';
import { WorkPage } from '../work/work-page.js';
import { Layout, Page } from './layout.js';
import { SignInPage } from './sign-in-page.js';

const ConversationsPage = later(async () => (await import('../conversations/conversations-page.js')).ConversationsPage);
const ConversationPage = later(async () => (await import('../conversations/conversation-page.js')).ConversationPage);
const AutomationsPage = later(async () => (await import('../automations/automations-page.js')).AutomationsPage);
const AutomationPage = later(async () => (await import('../automations/automations-page.js')).AutomationPage);
const NewAutomationPage = later(async () => (await import('../automations/automations-page.js')).NewAutomationPage);
const SettingsPage = later(async () => (await import('../settings/settings-page.js')).SettingsPage);
const AdministrationPage = later(
  async () => (await import('../administration/administration-page.js')).AdministrationPage,
);

/** @param refusal why the one-time link that opened the page does not work */
export function App({ refusal }: { refusal: string | null }) {
  const session = useQuery(sessionQuery);
  return (
    <Loaded query={session} name="Slipway">
      {(user) =>
        user === null ? (
          <SignInPage refusal={refusal} />
        ) : (
          <Layout user={user}>
            <Suspense fallback={null}>
              <Switch>
                <Route path="/" component={WorkPage} />
                <Route path="/conversations" component={ConversationsPage} />
                <Route path="/conversations/:id">{({ id }) => <ConversationPage key={id} id={id} />}</Route>
                <Route path="/automations" component={AutomationsPage} />
                <Route path="/automations/new" component={NewAutomationPage} />
                <Route path="/automations/:id">{({ id }) => <AutomationPage key={id} id={id} />}</Route>
                <Route path="/settings" component={SettingsPage} />
                {user.is_admin && <Route path="/administration" component={AdministrationPage} />}
                <Route>
                  <Page title="Not found">
                    <Empty title="There is no such page.">The links above lead to all pages that there are.</Empty>
                  </Page>
                </Route>
              </Switch>
            </Suspense>
          </Layout>
        )
      }
    </Loaded>
  );
}

/** A page whose code is loaded when it is opened. */
function later<P>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return lazy(async () => ({ default: await load() }));
}
