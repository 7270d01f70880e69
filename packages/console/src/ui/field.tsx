import { type ComponentProps, type ReactNode, useId } from 'react';

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
