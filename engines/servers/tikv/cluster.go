// The cluster: its address, what PD says of its stores, and whether all of them can be reached.

package tikv

import (
	"context"
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	pd "github.com/tikv/pd/client"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

const (
	// PD's client tries to find the leader so often, with a pause of a second, and each try may take askLimit.
	findTries = 3
	askLimit  = 3 * time.Second
	// firstSynced is the first major version whose log is always synced: before it, sync-log could be switched off.
	firstSynced = 5
	module      = "github.com/tikv/client-go/v2"
)

type cluster struct {
	address *host.URL
	secure  *tls.Config // nil: without TLS
	// stores are the addresses of those that are up; version is their oldest.
	stores  []string
	version string
}

// find reads the address and connects to PD once.
func find(own *driver.Config, engine string) (*cluster, error) {
	address, err := host.Given(own, "2379", "pd", "pds")
	if err != nil {
		return nil, err
	}
	if address == nil {
		return nil, driver.Fail(driver.Failed, "no cluster: kvdyno starts no TiKV; give PD's address of a running one with --option "+
			"%s.url=pd://127.0.0.1:2379 (`tiup playground --mode tikv-slim` starts one, see https://tiup.io)", engine)
	}
	if address.User != "" || strings.Contains(own.Text("url"), "@") {
		return nil, driver.Fail(driver.Failed, "option url: TiKV has no users and passwords; clients are known by their certificates "+
			"(pds://, options ca-file, cert-file, key-file)")
	}
	if address.Path != "" {
		return nil, driver.Fail(driver.Failed, "option url: `%s` has a path after its hosts", address)
	}
	made := &cluster{address: address}
	if address.Scheme == "pds" {
		if own.Text("ca-file") == "" {
			return nil, driver.Fail(driver.Failed, "option ca-file: TiKV's client needs the authority's certificate for pds://")
		}
		if made.secure, err = host.TLS(own); err != nil {
			return nil, err
		}
	} else {
		for _, each := range host.TLSOptions() {
			if own.Text(each.Name) != "" {
				return nil, driver.Fail(driver.Failed, "option %s: it needs an url that begins with pds://", each.Name)
			}
		}
	}
	if err := address.Reach(made.secure); err != nil {
		return nil, err
	}
	if err := address.Answers(made.secure, host.GRPC); err != nil {
		return nil, err
	}
	return made, nil
}

// pdOptions bound the time in which PD's client gives up.
func pdOptions() []pd.ClientOption {
	return []pd.ClientOption{pd.WithMaxErrorRetry(findTries), pd.WithCustomTimeoutOption(askLimit)}
}

// isNoPD is the error of a server that answers, but not as PD does.
func (c *cluster) isNoPD(err error) error {
	return driver.Fail(driver.Failed, "%s: no answer of a PD that has a leader: %s", c.address, line(err.Error()))
}

// look asks PD for its stores, and connects to each once: a client that never reaches one would try for a long time.
func (c *cluster) look(client pd.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), controlLimit)
	defer cancel()
	all, err := client.GetAllStores(ctx, pd.WithExcludeTombstone())
	if err != nil {
		return c.isNoPD(err)
	}
	oldest := 0
	for _, each := range all {
		if each.State != metapb.StoreState_Up || isColumnar(each) {
			continue
		}
		major, _, _ := strings.Cut(strings.TrimPrefix(each.Version, "v"), ".")
		number, err := strconv.Atoi(major)
		if err != nil || number < firstSynced {
			return driver.Fail(driver.Unsupported, "%s: the store has version `%s`, whose log may be set not to be synced; TiKV %d.0 or "+
				"newer is needed", each.Address, each.Version, firstSynced)
		}
		if oldest == 0 || number < oldest {
			oldest, c.version = number, strings.TrimPrefix(each.Version, "v")
		}
		c.stores = append(c.stores, each.Address)
	}
	if len(c.stores) == 0 {
		return driver.Fail(driver.Failed, "%s: PD knows no store that is up; start a tikv-server that is told this PD", c.address)
	}
	stores := &host.URL{Scheme: c.address.Scheme, Hosts: c.stores}
	err = stores.Reach(c.secure)
	if err == nil {
		err = stores.Answers(c.secure, host.GRPC)
	}
	if err != nil {
		return driver.Fail(driver.Failed, "%v (the address of a store as PD has it: its advertise-addr must be reachable from here)", err)
	}
	return nil
}

// isColumnar reports whether a store is TiFlash, which has no rows of keys and values.
func isColumnar(store *metapb.Store) bool {
	for _, label := range store.Labels {
		if label.Key == "engine" && strings.HasPrefix(label.Value, "tiflash") {
			return true
		}
	}
	return false
}

// copies of a row: the peers that vote in its region; 0: unknown.
func copies(ctx context.Context, client pd.Client, key []byte) int {
	found, err := client.GetRegion(ctx, key)
	if err != nil || found == nil || found.Meta == nil {
		return 0
	}
	count := 0
	for _, each := range found.Meta.Peers {
		if each.Role != metapb.PeerRole_Learner && !each.IsWitness {
			count++
		}
	}
	return count
}

// tell reports what is in effect.
func (c *cluster) tell(own *driver.Config, opened *driver.Opened, copies int) {
	opened.Version = c.version
	opened.Effective("class", c.address.Class(copies))
	if copies > 0 {
		opened.Effective("replication", copies)
	}
	opened.Effective("servers", len(c.stores))
	opened.Effective("persistence", "a majority syncs its log before the reply, as TiKV always does; not observed")
	opened.Effective("client", driver.ModuleVersion(module))
	opened.Effective("usage", "client")
	opened.Effective("url", c.address.String())
	host.EffectiveTLS(own, opened)
}

// hosts of PD with a scheme, as its client takes them.
func (c *cluster) hosts() []string {
	scheme := map[bool]string{true: "http://", false: "https://"}[c.secure == nil]
	made := make([]string, len(c.address.Hosts))
	for i, name := range c.address.Hosts {
		made[i] = scheme + name
	}
	return made
}
