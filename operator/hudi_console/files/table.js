// A table: its timeline, its writers, what waits.

import { ago, badge, conditions, fact, grid, h, history, link, parts, reasons, section } from './dom.js';
import { Timeline } from './timeline.js';
import { conflicts } from './writer.js';

const listed = (names) => (names ?? []).join(', ');

function head(table) {
  const { spec } = table;
  return [
    h('h1', {}, table.name, ' ', badge(table.state, table.tone)),
    h('dl', { class: 'facts' },
      fact('Path', h('code', {}, spec.path)), fact('Type', spec.type), fact('Mode', spec.mode), fact('Suspended', spec.suspend ? 'yes' : null),
      fact('Record key', listed(spec.recordKeyFields)), fact('Partitions', listed(spec.partitionFields)), fact('Ordering', listed(spec.orderingFields)),
      fact('Last commit', table.lastCommit ? ago(table.lastCommit) : 'none'), fact('Pending instants', table.pending), fact('Conflicts', table.conflicts)),
  ];
}

const writers = (all) => section('Writers', all.length
  ? grid(['Writer', 'State', 'Attempt', 'Last commit', 'Records', 'Conflicts', 'What waits, and why'], all.map((one) => [
    link('writers', one.namespace, one.name), badge(one.state, one.tone), one.attempt ?? '', ago(one.lastCommit, 'none'), one.records, one.conflicts, one.why,
  ]), { class: 'cards' })
  : h('p', { class: 'quiet' }, 'None.'));

const queue = (all) => section('Queue', grid(['Place', 'Writer', 'Priority', 'Since', 'Blocked by'], all.map((one) => [
  one.position ?? '?', one.name, one.priority, ago(one.since), one.blockedBy ?? '',
]), { class: 'cards' }));

const settling = (all) => section('Dead writers', grid(['Pod', 'Phase', 'Since', 'Reason', 'Waits for'], all.map((one) => [
  one.pod ?? one.incarnation, badge(one.phase, 'busy'), ago(one.since), one.reason ?? '', one.waitingFor ?? '',
]), { class: 'cards' }));

const services = (all) => section('Table services', grid(['Service', 'Last run', 'When', 'Next', 'Message'], all.map((one) => [
  one.name, one.outcome ?? 'has not run', ago(one.lastTime), one.nextTime ? `${one.nextTime}` : one.commitsUntilNext === undefined ? '' : `after ${one.commitsUntilNext} commits`, one.message ?? '',
]), { class: 'cards' }));

const pending = (all) => section('Instants that are not completed', grid(['Instant', 'Action', 'State', 'Attempt'], all.map((one) => [
  one.instant, one.action ?? '', one.state ?? '', one.owner ?? '',
]), { class: 'cards' }));

const savepoints = (all) => section('Savepoints', grid(['Name', 'Outcome', 'When', 'Instant', 'Message'], all.map((one) => [
  one.name, one.outcome, ago(one.time), one.instant ?? '', one.message ?? '',
]), { class: 'cards' }));

const orNone = (all) => (all?.length ? all : null);

export function tablePage(main) {
  let draw = null;
  let timeline = null;
  return {
    show(found) {
      if (!draw) {
        const place = h('div');
        const first = h('div');
        const rest = h('div');
        timeline = new Timeline(place);
        main.replaceChildren(first, place, rest);
        const above = parts(first);
        const below = parts(rest);
        draw = (name, shown, make) => (name === 'head' || name === 'why' ? above : below)(name, shown, make);
      }
      const { conditions: all, why, ...table } = found.table;
      draw('head', table, head);
      draw('why', found.why, (one) => h('ul', { class: 'why-tree' }, reasons(one)));
      timeline.show(found.lanes);
      draw('writers', found.writers, writers);
      draw('queue', orNone(found.queue), queue);
      draw('settling', orNone(found.settling), settling);
      draw('pending', orNone(found.pending), pending);
      draw('services', orNone(found.services), services);
      draw('savepoints', orNone(found.savepoints), savepoints);
      draw('conflicts', orNone(found.conflicts), (some) => conflicts(some, true));
      draw('conditions', all, (some) => section('Conditions', conditions(some)));
      draw('history', [found.told, found.eventsHidden], ([told, hidden]) => section('History', history(told, hidden)));
    },
    end() { timeline?.end(); },
  };
}
