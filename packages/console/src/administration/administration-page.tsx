import { Page } from '../shell/layout.js';
import { Contents } from '../ui/blocks.js';
import { Audit } from './audit.js';
import { Sandboxes, Service } from './service.js';
import { Users } from './users.js';

export function AdministrationPage() {
  return (
    <Page title="Administration">
      <Contents titles={['Service', 'Users', 'Sandboxes', 'Audit']} />
      <Service />
      <Users />
      <Sandboxes />
      <Audit />
    </Page>
  );
}
