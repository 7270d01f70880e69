import { useQuery } from '@tanstack/react-query';
import { Activity, Component, type ComponentType, lazy, type PropsWithChildren, Suspense, useEffect } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { api, bodyOf, session, sessionQuery, useSessionChange } from '../api/client.js';
import icon from '../icon.svg';
import { Button, Callout, Empty, Loaded } from '../ui/blocks.js';
import { type Fields, Form, TextField } from '../ui/form.js';
import { WorkPage } from '../work/work-page.js';
import { Layout, Page } from './layout.js';

const ConversationsPage = later(async () => (await import('../conversations/conversations-page.js')).ConversationsPage);
const ConversationPage = later(async () => (await import('../conversations/conversation-page.js')).ConversationPage);
const AutomationsPage = later(async () => (await import('../automations/automations-page.js')).AutomationsPage);
const AutomationPage = later(async () => (await import('../automations/automations-page.js')).AutomationPage);
const NewAutomationPage = later(async () => (await import('../automations/automations-page.js')).NewAutomationPage);
const SettingsPage = later(async () => (await import('../settings/settings-page.js')).SettingsPage);
const AdminPage = later(async () => (await import('../administration/administration-page.js')).AdministrationPage);
const DevicePage = later(async () => (await import('./device-page.js')).DevicePage);

/** @param refusal why the one-time link that opened the page does not work */
export function App({ refusal }: { refusal: string | null }) {
  const [path] = useLocation();
  const who = useQuery(sessionQuery);
  return (
    <Loaded query={who} name="Slipway">
      {(user) => (
        <>
          {(user === null || user.hasEnded) && <SignInPage refusal={refusal} />}
          {user && (
            <Activity key={user.id} mode={user.hasEnded ? 'hidden' : 'visible'}>
              <Layout user={user}>
                <PageOrReason key={path}>
                  <Suspense fallback={null}>
                    <Switch>
                      <Route path="/" component={WorkPage} />
                      <Route path="/conversations" component={ConversationsPage} />
                      <Route path="/conversations/:id">{({ id }) => <ConversationPage key={id} id={id} />}</Route>
                      <Route path="/automations" component={AutomationsPage} />
                      <Route path="/automations/new" component={NewAutomationPage} />
                      <Route path="/automations/:id">{({ id }) => <AutomationPage key={id} id={id} />}</Route>
                      <Route path="/settings" component={SettingsPage} />
                      <Route path="/device">
                        <DevicePage user={user} />
                      </Route>
                      {user.is_admin && <Route path="/administration" component={AdminPage} />}
                      <Route>
                        <Page title="Not found">
                          <Empty title="This page does not exist">Use the links above.</Empty>
                        </Page>
                      </Route>
                    </Switch>
                  </Suspense>
                </PageOrReason>
              </Layout>
            </Activity>
          )}
        </>
      )}
    </Loaded>
  );
}

const HINT = 'It starts a session in this browser and is not kept on this page';

function SignInPage({ refusal }: { refusal: string | null }) {
  const change = useSessionChange();
  const signIn = (field: Fields) => change(() => bodyOf(api.POST('/auth/key', { body: { key: field('api key') } })));
  useEffect(() => {
    document.title = 'Sign in · Slipway';
  }, []);
  return (
    <main className="sign-in">
      <div className="brand">
        <img src={icon} width="22" height="22" alt="" />
        Slipway
      </div>
      <h1>Sign in</h1>
      {refusal !== null && <Callout kind="error" title="The link does not work" text={refusal} />}
      {session.signInUrl !== null && (
        <>
          <a
            className="button primary"
            href={`${session.signInUrl}?return_to=${encodeURIComponent(location.pathname + location.search)}`}>
            Sign in with your company account
          </a>
          <p className="hint">Or with an API key:</p>
        </>
      )}
      <Form name="Sign in" submit="Sign in" onSubmit={signIn}>
        <TextField label="API key" type="password" required autoFocus hint={HINT} />
      </Form>
      <p className="hint">
        No key? <code>npm start</code> prints a sign-in link in its terminal, and an administrator can issue you a key.
      </p>
    </main>
  );
}

/** A page whose code is loaded when it is opened. */
function later<P>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return lazy(async () => ({ default: await load() }));
}

const UNSHOWN = 'This page cannot be shown';
const AWAY = 'The service may be restarting, or have a new version. Load the page again in a moment.';

/** Stands where a page could not be drawn, or its code did not arrive: React takes everything away otherwise. */
class PageOrReason extends Component<PropsWithChildren> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) {
      return this.props.children;
    }
    const again = <Button onClick={() => location.reload()} text="Load again" />;
    return <Page title="Not shown" children={<Callout kind="error" title={UNSHOWN} text={AWAY} children={again} />} />;
  }
}
