import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ComponentProps, type FormEvent, type ReactNode, useId, useRef } from 'react';
import { Button, Callout } from './blocks.js';

interface Labelled {
  label: string;
  hint?: ReactNode;
}

/** The browser fills in no secrets. */
const SECRET = { autoComplete: 'off', spellCheck: false };

export function TextField({ label, hint, ...rest }: Labelled & ComponentProps<'input'>) {
  const own = rest.type === 'password' ? SECRET : {};
  return <Field label={label} hint={hint} draw={(of) => <input {...own} {...of} {...rest} />} />;
}

export function SelectField({ label, hint, ...rest }: Labelled & ComponentProps<'select'>) {
  return <Field label={label} hint={hint} draw={(of) => <select {...of} {...rest} />} />;
}

export function TextArea({ label, hint, ...rest }: Labelled & ComponentProps<'textarea'>) {
  return <Field label={label} hint={hint} draw={(of) => <textarea {...of} {...rest} />} />;
}

interface FieldProps extends Labelled {
  draw: (of: { id: string; name: string; 'aria-describedby': string | undefined }) => ReactNode;
}

/** Its name in the form is its label in lower case. */
function Field({ label, hint, draw }: FieldProps) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {draw({ id, name: label.toLowerCase(), 'aria-describedby': hintId })}
      {hintId !== undefined && (
        <p id={hintId} className="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

/** The choices of a select, as value and name. */
export function Options({ of }: { of: Iterable<readonly [value: string, name: string]> }) {
  return [...of].map(([value, name]) => (
    <option key={value} value={value}>
      {name}
    </option>
  ));
}

interface FormProps {
  /** Screen readers, and tests, find the form by it. */
  name: string;
  submit: string;
  /** Gets the fields by their names, trimmed; resolves to what is said then. */
  onSubmit: (field: Fields) => Promise<string | { warning: string } | null>;
  /** What is asked for again then. */
  old?: unknown[][];
  /** Beside the button. */
  actions?: ReactNode;
  children: ReactNode;
}

export type Fields = (name: string) => string;

/** A form that shows that it works, what it has done, and why it failed. It is emptied when that went well. */
export function Form({ name, submit, onSubmit, old = [], actions, children }: FormProps) {
  const cache = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const sent = useMutation({
    mutationFn: onSubmit,
    onSuccess: async () => {
      await Promise.all(old.map((queryKey) => cache.invalidateQueries({ queryKey })));
      form.current?.reset();
    },
    meta: { showsErrors: true },
  });
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    sent.mutate(fieldsOf(event.currentTarget));
  };
  return (
    <form ref={form} aria-label={name} name={name} onSubmit={send} className="form">
      {children}
      {sent.isError && <Callout kind="error">{sent.error.message}</Callout>}
      {typeof sent.data === 'object' && sent.data !== null && <Callout kind="warning">{sent.data.warning}</Callout>}
      <div className="actions">
        <Button type="submit" look="primary" isBusy={sent.isPending}>
          {submit}
        </Button>
        {actions}
        <span role="status" className="done">
          {typeof sent.data === 'string' ? sent.data : null}
        </span>
      </div>
    </form>
  );
}

export function fieldsOf(form: HTMLFormElement): Fields {
  const data = new FormData(form);
  return (name) => {
    const value = data.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
}

/** Without members that were left empty. */
export function given<T extends Record<string, string>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '')) as Partial<T>;
}
