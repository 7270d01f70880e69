import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { api, bodyOf, bodyQuery, by, type Schemas } from '../api/client.js';
import { ActionButton } from '../ui/actions.js';
import { Button, Callout, Loaded, Pairs } from '../ui/blocks.js';
import { Form, TextField } from '../ui/form.js';
import { Page } from './layout.js';

const WARNING =
  'Go on only if you began this login yourself, a moment ago, and your device shows this very code. Nobody who ' +
  'helps you needs it; whoever sent you a link with it wants to act in your name.';

const CODE = { label: 'Code', hint: 'The eight letters that the device shows' };

/** Lets a person approve a device (RFC 8628); a link alone does nothing. */
export function DevicePage({ user }: { user: Schemas['SessionUser'] }) {
  const [search, setSearch] = useSearchParams();
  const code = search.get('user_code') ?? '';
  return (
    <Page title="Let a device in">
      {code === '' ? (
        <Form name="Device" submit="Go on" onSubmit={async (field) => setSearch({ user_code: field('code') })}>
          <TextField {...CODE} required autoFocus autoComplete="off" />
        </Form>
      ) : (
        <WaitingDevice key={code} code={code} user={user} onOther={() => setSearch({})} />
      )}
    </Page>
  );
}

function WaitingDevice({ code, user, onOther }: { code: string; user: Schemas['SessionUser']; onOther: () => void }) {
  const [isLetIn, setLetIn] = useState<boolean>();
  const login = useQuery({
    ...bodyQuery(['device', code], () => api.GET('/oauth/device/login', by({ user_code: code }))),
    staleTime: 'static',
  });
  const decide = async (approve: boolean) => {
    await bodyOf(api.POST('/oauth/device/verify-authenticated', { body: { user_code: code, approve } }));
    setLetIn(approve);
  };
  if (isLetIn !== undefined) {
    const text = isLetIn ? 'Go back to the device. You can close this page.' : 'It gets no key.';
    return <Callout kind="info" title={isLetIn ? 'The device is let in' : 'The device is refused'} text={text} />;
  }
  if (login.isError) {
    return (
      <Callout kind="error" title="This code lets no device in" text={login.error.message}>
        <Button onClick={onOther} text="Type another code" />
      </Callout>
    );
  }
  const key = `An API key of ${user.email}: it reads, and starts and continues work; it changes no settings`;
  return (
    <Loaded query={login} name="the device">
      {({ user_code, client, address, created_at }) => (
        <div className="form">
          <Callout kind="warning" title={`Does the device show ${user_code}?`} text={WARNING} />
          <Pairs
            className="facts"
            of={{ Program: client, Address: address, Began: new Date(created_at).toLocaleString(), 'It gets': key }}
          />
          <div className="actions">
            <ActionButton look="primary" act={() => decide(true)} text="Let it in" />
            <ActionButton act={() => decide(false)} text="Refuse" />
          </div>
        </div>
      )}
    </Loaded>
  );
}
