import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from '../api/client.js';
import { PATH_PREFIX } from '../api/path-prefix.js';
import { Callout, Loaded, Section } from '../ui/blocks.js';
import { CheckField, type Fields, Form } from '../ui/form.js';

type Kind = Schemas['PushSubscription']['kinds'][number];

const KINDS: Record<Kind, string> = {
  waiting: 'An agent waits for me',
  finished: 'An agent has finished',
  failed: 'An agent has failed',
  pull_request: 'A pull request has reached its goal',
};
const NAMES = Object.keys(KINDS) as Kind[];
const LEAD =
  'What this browser tells you while no page of the console is open: the title of a conversation and its state, encrypted for this browser.';
const UNABLE = 'Browsers offer notifications to pages by https. This page is not, or this browser has none.';
const DENIED = 'This browser does not allow notifications here. Allow them in its settings, then save again.';
const WORKER = `${PATH_PREFIX}/console/notifications.js`;

async function subscriptionHere(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker?.getRegistration(WORKER);
  return (await registration?.pushManager?.getSubscription()) ?? null;
}

/** The kinds that this browser is told of; null where it can be told of nothing. */
const kindsQuery = queryOptions({
  queryKey: ['notifications'],
  queryFn: async (): Promise<Kind[] | null> => {
    if (!('serviceWorker' in navigator && 'PushManager' in window)) {
      return null;
    }
    const here = await subscriptionHere();
    const all = here === null ? [] : await bodyOf(api.GET('/api/v1/push/subscriptions'));
    return all.find(({ endpoint }) => endpoint === here?.endpoint)?.kinds ?? [];
  },
});

/** Users who sign in here later must not get this user's notifications. */
export async function endNotifications(): Promise<void> {
  const here = await subscriptionHere();
  if (here !== null) {
    await bodyOf(api.DELETE('/api/v1/push/subscriptions', { body: { endpoint: here.endpoint } }));
    await here.unsubscribe();
  }
}

/** `ready` never comes to a page that was opened at `/`, above the worker. */
async function activeWorker(): Promise<ServiceWorkerRegistration> {
  const registration = await navigator.serviceWorker.register(WORKER);
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = () => worker?.state === 'activated' && resolve();
  worker?.addEventListener('statechange', look);
  look();
  await promise;
  return registration;
}

async function save(field: Fields): Promise<string> {
  const kinds = NAMES.filter((kind) => field(kind) !== '');
  // A subscription for another key, as that of an earlier database, cannot be changed.
  await endNotifications();
  if (kinds.length === 0) {
    return 'This browser tells you nothing.';
  }
  if ((await Notification.requestPermission()) !== 'granted') {
    throw new Error(DENIED);
  }
  const { public_key: applicationServerKey } = await bodyOf(api.GET('/api/v1/push/key'));
  const { pushManager } = await activeWorker();
  const { endpoint = '', keys } = (
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
  ).toJSON();
  const body = { endpoint, keys: { p256dh: keys?.['p256dh'] ?? '', auth: keys?.['auth'] ?? '' }, kinds };
  await bodyOf(api.POST('/api/v1/push/subscriptions', { body }));
  return 'Saved for this browser.';
}

export function Notifications() {
  return (
    <Section title="Notifications" lead={LEAD}>
      <Loaded query={useQuery(kindsQuery)} name="notifications">
        {(kinds) =>
          kinds === null ? (
            <Callout kind="info" text={UNABLE} />
          ) : (
            <Form name="Notifications" submit="Save" onSubmit={save}>
              {NAMES.map((kind) => (
                <CheckField key={kind} label={KINDS[kind]} name={kind} defaultChecked={kinds.includes(kind)} />
              ))}
            </Form>
          )
        }
      </Loaded>
    </Section>
  );
}
