import { useEffect } from 'react';
import { api, bodyOf, useSessionChange } from '../api/client.js';
import icon from '../icon.svg';
import { Form, TextField } from '../ui/form.js';
import { Callout } from '../ui/blocks.js';

/** @param refusal why the one-time link that opened the page does not work */
export function SignInPage({ refusal }: { refusal: string | null }) {
  const change = useSessionChange();
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
      <Form
        name="Sign in"
        submit="Sign in"
        onSubmit={async (field) => {
          await change(() => bodyOf(api.POST('/auth/key', { body: { key: field('api key') } })));
          return null;
        }}>
        <TextField
          label="API key"
          type="password"
          required
          autoFocus
          hint="It is exchanged for a session of this browser, and kept nowhere on this page."
        />
      </Form>
      <p className="hint">
        No key? The terminal of <code>npm start</code> prints a link that signs in by itself, and an administrator can
        issue a key.
      </p>
    </main>
  );
}
