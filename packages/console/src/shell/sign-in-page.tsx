import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { api, bodyOf } from '../api/client.js';
import { useSessionChange } from '../api/session.js';
import icon from '../icon.svg';
import { TextField } from '../ui/field.js';
import { Form } from '../ui/form.js';
import { Callout } from '../ui/problem.js';

/** @param code of a one-time link, which is tried once */
export function SignInPage({ code }: { code: string | null }) {
  const change = useSessionChange();
  const tried = useRef(false);
  const { mutate, error } = useMutation({
    mutationFn: (given: string) => change(() => bodyOf(api.POST('/auth/code', { body: { code: given } }))),
    meta: { showsErrors: true },
  });
  useEffect(() => {
    document.title = 'Sign in · Slipway';
    if (code !== null && !tried.current) {
      tried.current = true;
      mutate(code);
    }
  }, [code, mutate]);
  return (
    <main className="sign-in">
      <div className="brand">
        <img src={icon} width="22" height="22" alt="" />
        Slipway
      </div>
      <h1>Sign in</h1>
      {error !== null && (
        <Callout kind="error" title="The link does not work">
          {error.message}
        </Callout>
      )}
      <Form
        name="Sign in"
        submit="Sign in"
        onSubmit={async (field) => {
          await change(() => bodyOf(api.POST('/auth/key', { body: { key: field('api key') } })));
          return null;
        }}
      >
        <TextField
          label="API key"
          type="password"
          required
          autoFocus
          hint="It is exchanged for a session of this browser, and kept nowhere on this page."
        />
      </Form>
      <p className="hint">
        No key? The terminal of <code>npm start</code> prints a link that signs in by itself, and an
        administrator can issue a key.
      </p>
    </main>
  );
}
