import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, bodyQuery, session } from '../api/client.js';
import { Confirmed } from '../ui/actions.js';
import { Row, Rows, Section, When } from '../ui/blocks.js';
import { type Fields, Form, TextField } from '../ui/form.js';

const identitiesQuery = bodyQuery(['identities'], () => api.GET('/api/v1/users/me/identities'));
const LEAD = 'How you sign in with your company account. Link it once, and you are this user there as well.';
const UNLINKED = 'Sessions that began with it end. Whoever signs in with it next becomes a new user.';

const HINT = 'It shows that the account is yours, and is not stored';

const unlink = (id: string) => bodyOf(api.DELETE('/api/v1/users/me/identities/{id}', at(id)));

async function link(field: Fields) {
  const { url } = await bodyOf(api.POST('/auth/link', { body: { key: field('api key of this user') } }));
  location.assign(url);
  return 'Going on at your identity provider…';
}

/** Nothing where the operator has set no identity provider. */
export function SignIns() {
  const identities = useQuery({ ...identitiesQuery, select: ({ items }) => items });
  return session.signInUrl === null ? null : (
    <Section title="Company account" lead={LEAD}>
      <Rows query={identities} name="company accounts" empty="No company account is linked.">
        {({ id, issuer, subject, last_seen_at: seen }) => (
          <Row
            key={id}
            title={new URL(issuer).host}
            facts={[<code>{subject}</code>, <When what="Last signed in" time={seen} />]}>
            <Confirmed name="Unlink" of={subject} text={UNLINKED} act={() => unlink(id)} />
          </Row>
        )}
      </Rows>
      <Form name="Company account" submit="Link" onSubmit={link}>
        <TextField label="API key of this user" member="key" type="password" required hint={HINT} />
      </Form>
    </Section>
  );
}
